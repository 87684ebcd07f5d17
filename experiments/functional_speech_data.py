"""Words, cepstra and kernel matrices of the speech study of Lambert et al. (2022).

The data are those of Mitra et al. (2009), WORD.wav and WORD.csv in the folder ``speech`` of
``$FENCHEL_DATA``; they come with no licence and are not bundled.
"""

from __future__ import annotations

import os
import wave
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import ShuffleSplit

from fenchel.datasets import extend_symmetrically, local_outliers, swap_outliers
from fenchel.kernels import IntegralGaussian

FUNCTIONS = ("LP", "LA", "TBCL", "TBCD", "VEL", "GLO", "TTCL", "TTCD")
"""The first eight rows of the files."""
CEPSTRA = 13
RATE, FRAME, STEP = 10_000, 0.010, 0.005
"""Samples in a second; seconds of a frame, and from one to the next, as those of the curves."""
RHOS = np.geomspace(1e-2, 10**-0.5, 15)
TRAINING, WORDS = 250, 413
SHARE, POINTS = 0.1, 0.1
"""τ and ξ: share of the training curves with outliers, and of the points of these (type 3)."""


class Speech(NamedTuple):
    """Words, extended to the longest."""

    words: tuple[str, ...]
    sounds: np.ndarray
    """Standardized cepstra, (n, m, 13)."""
    curves: np.ndarray
    """Vocal tract functions in [-1, 1], (n, 8, m)."""
    lengths: np.ndarray
    """Frames that a word has of its own, (n,)."""

    @property
    def counted(self) -> np.ndarray:
        """Which frames are of the word and not of its mirror images, (n, m)."""
        return np.arange(self.curves.shape[2]) < self.lengths[:, None]


def missing() -> str | None:
    """What is not there, as a sentence, or None."""
    if not (folder() / "a.wav").exists():
        return f"the speech data are not at {folder()}: set FENCHEL_DATA to what holds speech/"
    if find_spec("python_speech_features") is None:
        return (
            "python_speech_features, which computes the cepstral coefficients, is not "
            'installed: pip install "fenchel[experiments]"'
        )
    return None


def folder() -> Path:
    """Where the recordings are expected."""
    return Path(os.environ.get("FENCHEL_DATA", "")) / "speech"


def samples(path: Path) -> np.ndarray:
    """The signal of a recording, 16 bits on one channel."""
    with wave.open(str(path)) as recording:
        found = recording.getframerate(), recording.getsampwidth(), recording.getnchannels()
        if found != (RATE, 2, 1):
            raise ValueError(f"{path.name} must have {RATE} Hz, 2 bytes, 1 channel, got {found}")
        return np.frombuffer(recording.readframes(recording.getnframes()), "<i2").astype(float)


def distinct(where: Path) -> list[str]:
    """Words in alphabetic order, the first of those that are pronounced alike to the last bit."""
    seen: dict[bytes, str] = {}
    for path in sorted(where.glob("*.wav")):
        seen.setdefault(path.read_bytes(), path.stem)
    return list(seen.values())


def cepstra(signal: np.ndarray) -> np.ndarray:
    """Thirteen mel-frequency cepstral coefficients of each frame, (m, 13)."""
    features = import_module("python_speech_features")
    return np.asarray(features.mfcc(signal, RATE, winlen=FRAME, winstep=STEP, numcep=CEPSTRA))


def standardized(series: np.ndarray) -> np.ndarray:
    """Each coefficient with mean 0 and variance 1 over all words and frames."""
    rows = series.reshape(-1, series.shape[-1])
    return np.asarray((series - rows.mean(axis=0)) / rows.std(axis=0))


def scaled(curves: np.ndarray) -> np.ndarray:
    """Each function in [-1, 1] over all words and frames, from (n, 8, m)."""
    low, high = curves.min(axis=(0, 2)), curves.max(axis=(0, 2))
    return 2.0 * (curves - low[:, None]) / (high - low)[:, None] - 1.0


@cache
def load(n_words: int = WORDS) -> Speech:
    """Words that are evenly spread over the alphabet, by default all: signals and curves are
    extended, then cepstra are computed.
    """
    where = folder()
    names = distinct(where)
    names = [names[k] for k in np.linspace(0, len(names) - 1, n_words).astype(int)]
    signals = [samples(where / f"{name}.wav") for name in names]
    tracts = [np.loadtxt(where / f"{name}.csv", delimiter=",")[: len(FUNCTIONS)] for name in names]
    curves = extend_symmetrically([tract.T for tract in tracts])
    sounds = np.stack([cepstra(signal) for signal in extend_symmetrically(signals)])
    return Speech(
        tuple(names),
        standardized(sounds[:, : curves.shape[1]]),
        scaled(curves.transpose(0, 2, 1)),
        np.array([tract.shape[1] for tract in tracts]),
    )


@cache
def gram(n_words: int, rho: float) -> np.ndarray:
    """Kernel between all words; that of a split is a part of it."""
    flat = load(n_words).sounds.reshape(n_words, -1)
    return IntegralGaussian(1.0 / np.sqrt(2.0 * rho), n_channels=CEPSTRA)(flat)


def split(n_words: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Words for training (250 of 413) and for tests of the k-th random split."""
    size = round(TRAINING / WORDS * n_words)
    return next(ShuffleSplit(1, train_size=size, random_state=k).split(np.zeros((n_words, 1))))


def contaminate(Y: np.ndarray, outliers: str, seed: int) -> np.ndarray:
    """Training curves with outliers of a type: in a tenth of them, or in all ("type3_all")."""
    if outliers in ("type1", "type1_kept"):
        return swap_outliers(Y, SHARE, random_state=seed)[0]
    if outliers in ("type3", "type3_all"):
        share = SHARE if outliers == "type3" else 1.0
        return local_outliers(Y, share, share_of_points=POINTS, random_state=seed)[0]
    return Y


def judges(
    Y: np.ndarray, counted: np.ndarray, outliers: str, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Curves that held-out folds are judged by, and which of their points count.

    Those to fit, where a word has frames. As in the authors' public code, outliers are the curves
    of other words in "type1_kept", and keep their sign; in "type3_all" outlying points count
    beyond the end of a word too.
    """
    fitted = contaminate(Y, outliers, seed)
    if outliers == "type3_all":
        return fitted, counted | (fitted != Y)
    if outliers != "type1_kept":
        return fitted, counted
    place, rows = np.arange(len(Y)), np.flatnonzero(swap_outliers(Y, SHARE, random_state=seed)[1])
    place[rows] = np.roll(rows, -1)
    return Y[place], counted[place]


def thin(grid: np.ndarray, count: int) -> np.ndarray:
    """Some values of the upper part of a grid, which are easy to fit: for the quick version."""
    if count >= len(grid):
        return grid
    places = np.linspace(0.6 * (len(grid) - 1), len(grid) - 1, count)
    return grid[np.unique(np.round(places).astype(int))]

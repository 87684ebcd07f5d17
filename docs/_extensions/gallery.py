"""What the gallery of examples needs: one look, thumbnails to be read, and no missing data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx_gallery.scrapers import matplotlib_scraper
from sphinx_gallery.utils import scale_image
from style import STYLE

_LOGGER = logging.getLogger(__name__)
_NEEDS = re.compile(r"^# needs the data set (\w+)", re.MULTILINE)


def set_style(gallery_conf: Any, name: str) -> None:
    """Set the look of pictures, before each example."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  (after the back end has been chosen)

    plt.rcParams.update(STYLE)


def save_pictures(block: Any, block_vars: Any, gallery_conf: Any) -> str:
    """Save the pictures of a block; for the thumbnail the first axes of the first one alone."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  (after the back end has been chosen)

    script = Path(block_vars["target_file"])
    first = not block_vars["image_path_iterator"].paths
    if first and plt.get_fignums() and plt.figure(plt.get_fignums()[0]).axes:
        figure = plt.gcf()
        figure.canvas.draw()
        inches = figure.dpi_scale_trans.inverted()
        box = figure.axes[0].get_tightbbox().transformed(inches).padded(0.08)
        front = script.parent / "images" / "front" / f"{script.stem}.png"
        front.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(front, dpi=200, bbox_inches=box)
    return str(matplotlib_scraper(block, block_vars, gallery_conf))


def write_thumbnails(app: Sphinx) -> None:
    """Let thumbnails show what was saved for them, in place of pictures of several axes."""
    for front in Path(app.srcdir, "gallery").glob("*/images/front/*.png"):
        thumbnail = front.parents[1] / "thumb" / f"sphx_glr_{front.stem}_thumb.png"
        if thumbnail.exists():
            scale_image(front, thumbnail, *app.config.sphinx_gallery_conf["thumbnail_size"])


def has_data(name: str) -> bool:
    """Whether a data set can be read here."""
    from fenchel import datasets  # noqa: PLC0415  (slow, and not needed by all)

    try:
        datasets.load_dti() if name == "dti" else datasets.load(name)
    except OSError:
        return False
    return True


def examples_to_leave_out(folder: Path, gallery: Path) -> str:
    """A pattern of the examples whose data are not here, each said in a line.

    An example says what it needs in a comment, ``# needs the data set NAME``. Pages in the
    gallery that earlier builds left behind and that are no longer made are removed.
    """
    missing, kept = [], set()
    for path in sorted(folder.glob("*/plot_*.py")):
        needed = _NEEDS.findall(path.read_text(encoding="utf-8"))
        absent = [name for name in needed if not has_data(name)]
        if absent:
            _LOGGER.info("%s is left out: the data set %s is not here", path.name, absent[0])
            missing.append(re.escape(path.name))
        else:
            kept.add(path.stem)
    for page in gallery.glob("*/plot_*"):
        if page.name.split(".")[0] not in kept:
            page.unlink()
    return "|".join([r"__init__\.py", r"first_hour\.py", *missing])

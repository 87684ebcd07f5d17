"""``python docs/make_flats.py``: the table of the tutorial, docs/_static/flats.csv.

Its flats are invented: rents rise with the area, less than in proportion, differ between districts
and years, and vary more for large flats. Some cells are empty, as they are in real tables.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

OUT = Path(__file__).parent / "_static" / "flats.csv"
DISTRICTS = {"Altstadt": 1.30, "Bahnhof": 0.95, "Hafen": 1.10, "Nordstadt": 0.85, "Seeufer": 1.45}
HEATING = {"district": 1.00, "gas": 0.98, "heat pump": 1.06, "oil": 0.93}


def flats(n_rows: int = 2400, seed: int = 0) -> pd.DataFrame:
    """Return the table, with its empty cells."""
    random = np.random.default_rng(seed)
    area = np.round(np.exp(random.normal(4.15, 0.35, n_rows)))
    rooms = np.clip(np.round(area / 26 + random.normal(0, 0.5, n_rows)), 1, 7).astype(int)
    built = random.integers(1900, 2024, n_rows)
    day = random.integers(0, 5 * 365, n_rows)
    district = random.choice(list(DISTRICTS), n_rows, p=[0.2, 0.25, 0.2, 0.25, 0.1])
    heating = random.choice(list(HEATING), n_rows, p=[0.3, 0.4, 0.1, 0.2])
    balcony = random.random(n_rows) < 0.25 + 0.1 * rooms.clip(1, 5)
    level = 32.0 * area**0.75 * pd.Series(district).map(DISTRICTS).to_numpy()
    level *= pd.Series(heating).map(HEATING).to_numpy() * (1.0 + 0.04 * day / 365)
    level *= 1.0 + 0.05 * balcony + 0.0025 * np.abs(built - 1955) / 2
    spread = np.exp((0.06 + 0.0012 * area) * random.standard_t(6, n_rows))
    first = pd.Timestamp("2019-01-01")
    table = pd.DataFrame(
        {
            "listed": (first + pd.to_timedelta(day, "D")).strftime("%d.%m.%Y"),
            "district": district,
            "area": area,
            "rooms": rooms,
            "built": built.astype(float),
            "heating": heating,
            "balcony": np.where(balcony, "yes", "no"),
            "rent": np.round(level * spread / 5.0) * 5.0,
        }
    )
    for column, share in (("area", 0.04), ("built", 0.10), ("heating", 0.08)):
        table.loc[random.random(n_rows) < share, column] = None
    return table


if __name__ == "__main__":
    flats().to_csv(OUT, index=False, float_format="%.0f", lineterminator="\n")

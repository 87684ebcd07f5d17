#!/bin/sh
# The first hour with a table of your own, on the command line:
#
#     sh examples/first_hour.sh TABLE.csv TARGET [FOLDER]
#
# Without arguments, the flats of the tutorial, and the folder first_hour for what is written.
set -eu
table=${1:-$(dirname "$0")/../docs/_static/flats.csv}
target=${2:-rent}
folder=${3:-first_hour}
mkdir -p "$folder"

# the defaults beside a linear model and gradient boosting, on rows that none has seen
fenchel compare "$table" --target "$target"

# three curves: what was done with the columns, what matters, and how good the fit is
fenchel fit "$table" --target "$target" --out "$folder/model.skops"

# ranges that hold 80 % of new rows, and what they are for a table
fenchel fit "$table" --target "$target" --coverage 0.8 --out "$folder/ranges.skops"
fenchel predict "$folder/ranges.skops" "$table" --out "$folder/predictions.csv"

# a page with pictures, to be opened in a browser
fenchel report "$folder/model.skops" "$table" --target "$target" --out "$folder/report.html"

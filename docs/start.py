from fenchel import QuantileRegressor
from fenchel.datasets import load_engel
from fenchel.plotting import FanDisplay

X, y = load_engel(return_X_y=True, as_frame=True)
levels = [0.1, 0.25, 0.5, 0.75, 0.9]
model = QuantileRegressor(levels).fit(X, y)  # kernel and alpha are learned from held-out rows
print(model.certificate_.relative_gap)  # a proof: no model is better by more than this
display = FanDisplay.from_estimator(model, X, y)

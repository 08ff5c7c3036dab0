"""Area of a machine on an ECP5, predicted from its fields."""

from accel.area.area_model import Area, AreaError, predict_area

__all__ = ["Area", "AreaError", "predict_area"]

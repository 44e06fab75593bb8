from .fit import SegmentHistory as SegmentHistory

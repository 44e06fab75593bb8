from .segment_history import SegmentHistory as SegmentHistory

from .paper_report import write_paper_report as write_paper_report
from .replay_report import write_replay_report as write_replay_report
from .segment_report import segments_report as segments_report
from .segment_report import write_segments_report as write_segments_report

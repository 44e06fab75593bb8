from .paper_report import write_paper_report as write_paper_report
from .segment_report import segments_report as segments_report

from .stopping.gittins_index import gittins_table as gittins_table
from .stopping.paper_values import PaperTable as PaperTable
from .stopping.paper_values import paper_values as paper_values

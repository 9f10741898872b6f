"""What changed from one robots.txt to another, and whether anything did that a crawler obeys; pure."""

from robots_core.diff.comparison import AgentsChange as AgentsChange
from robots_core.diff.comparison import Changes as Changes
from robots_core.diff.comparison import PathChange as PathChange
from robots_core.diff.comparison import RatesChange as RatesChange
from robots_core.diff.comparison import changes as changes
from robots_core.diff.effect import same_effect as same_effect

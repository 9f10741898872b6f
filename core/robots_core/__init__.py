"""What a robots.txt means to a crawler: files are read, URLs decided and mistakes found, without I/O.

read(body).decide("https://example.com/page", "ExampleBot").allowed
"""

from robots_core.file import Decision as Decision
from robots_core.file import File as File
from robots_core.file import UnknownDialect as UnknownDialect
from robots_core.file import agent as agent
from robots_core.file import outcome as outcome
from robots_core.file import read as read
from robots_core.origin import BadUrl as BadUrl
from robots_core.outcomes import BadOutcome as BadOutcome
from robots_core.robots.agents import Agent as Agent
from robots_core.robots.agents import BadAgent as BadAgent
from robots_core.robots.rates import Rate as Rate
from robots_core.robots.verdict import Permission as Permission
from robots_core.robots.verdict import Reason as Reason

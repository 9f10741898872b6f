"""The modules of the page as one script.

A browser learns of a module from those that import it, and fetches six at once at most; on a slow net, fifty modules
take seconds. The modules of the page are plain: they import names of each other, one import per line, and nothing else.
"""

from collections.abc import Sequence
from graphlib import TopologicalSorter
from pathlib import Path

_IMPORT, _EXPORT = "import ", "export "


def page_script(main: Path) -> str:
    """A module that does what `main` does: the modules that it imports, each as a function, and then its own lines.

    Comments on lines of their own are left out. Raises graphlib.CycleError if modules import each other.
    """
    sources = {main.name: _code_of(main)}
    left, imports = [main.name], {}
    while left:
        name = left.pop()
        imports[name] = [_import(line)[1] for line in sources[name] if line.startswith(_IMPORT)]
        for imported in imports[name]:
            if imported not in sources:
                sources[imported] = _code_of(main.with_name(imported))
                left.append(imported)
    *modules, _ = TopologicalSorter(imports).static_order()
    return "\n".join([*(_function(name, sources[name]) for name in modules), *map(_inside, sources[main.name]), ""])


def _function(name: str, lines: Sequence[str]) -> str:
    exported = [_exported(line) for line in lines if line.startswith(_EXPORT)]
    body = "\n".join(map(_inside, lines))
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _inside(line: str) -> str:
    """The line of a module as a line of a function."""
    if line.startswith(_IMPORT):
        names, source = _import(line)
        return f"const {names} = {_variable(source)};"
    return line.removeprefix(_EXPORT)


def _import(line: str) -> tuple[str, str]:
    """What an import names, "{ el, plain }", and the name of the module's file."""
    names, _, source = line.removeprefix(_IMPORT).partition(" from ")
    return names, source.strip('"./;').removesuffix(".js") + ".js"


def _exported(line: str) -> str:
    """The name that an export declares: of a function, a class or a constant."""
    _, _, declared = line.removeprefix(_EXPORT).removeprefix("async ").partition(" ")
    return declared.partition("(")[0].split()[0]


def _variable(name: str) -> str:
    return "$" + name.removesuffix(".js").replace("-", "_")


def _code_of(path: Path) -> list[str]:
    """The lines of a module without comments that fill lines."""
    code, in_comment = [], False
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        in_comment = in_comment or text.startswith("/*")
        if not in_comment and not text.startswith("//"):
            code.append(line)
        in_comment = in_comment and not text.endswith("*/")
    return code

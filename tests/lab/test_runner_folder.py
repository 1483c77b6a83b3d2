"""The runner's programs are root's: what is measured cannot change what uploads the results after it."""

from __future__ import annotations

_CHANGES = """
cd ../..
for place in externals/node20/bin/node bin/Runner.Worker run.sh .env .path .runner; do
  { rm -f "$place"; printf '#!/bin/sh\\necho mine\\n' >"$place" && chmod 755 "$place" && echo "changed $place"; } 2>&1
done
for folder in externals/node20 bin; do mv "$folder" "$folder.old" && echo "moved $folder" && mv "$folder.old" "$folder"; done
touch new bin/new externals/new && echo made
mkdir ../home/mine && mount --bind ../home/mine bin && echo mounted
"""


def test_a_job_changes_none_of_the_runners_programs(lab, github):
    result = github.run(
        _CHANGES, "../../externals/node20/bin/node", "echo it can write >../../_diag/x >../x && echo wrote"
    )
    lines = result.output.splitlines()
    assert [line for line in lines if line.startswith(("changed", "moved", "made", "mounted"))] == []
    assert "node of the archive" in lines
    assert "wrote" in lines
    assert "mine" not in lines


def test_job_owns_only_its_work_and_diag_folders(lab, github):
    look = "cd ../..; find . -path ./_work -prune -o -path ./_diag -prune -o -writable -print -o -user $(id -u) -print"
    result = github.run(look, "cd ../..; find . -maxdepth 1 -writable", "cd; find .. -maxdepth 1 -writable")
    assert result.output.splitlines()[1:] == [
        "step ended with 0",
        "./_diag",
        "./_work",
        "step ended with 0",
        "../home",
        "step ended with 0",
    ], result.output

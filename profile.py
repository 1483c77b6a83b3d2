"""One machine on which pytest-ldos measures ROS 2 manipulation stacks: ROS 2 Jazzy, MoveIt 2, Gazebo Harmonic, LTTng.

Instructions:
When the node is up, it sets itself up, which takes a while: `tail -f /var/log/ldos-lab/bootstrap.log` on the node.
Then, in a shell on the node: `cd /local/repository && make ros2-baseline` (`/local/ldos`, if you chose a repository).
To tune it, or to make it a runner of GitHub's jobs: `sudo lab/bootstrap --config FILE`, as lab/README.md says.
"""  # noqa: A005 - the name that CloudLab wants

import re
import sys

if __name__ == "profile":
    # CloudLab wants this file by this name, and here: a program that runs here and asks for the standard library's
    # module (cProfile does) is given that.
    import importlib.machinery
    import importlib.util
    import sysconfig

    _spec = importlib.machinery.PathFinder.find_spec("profile", [sysconfig.get_path("stdlib")])
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["profile"] = _module
    _spec.loader.exec_module(_module)
else:
    from geni import portal
    from geni.rspec import pg

    images = "urn:publicid:IDN+emulab.net+image+emulab-ops//"
    # Text from the form becomes words of a shell's command on the node.
    repository_form = re.compile(r"(https://[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(/[A-Za-z0-9_~][A-Za-z0-9._~-]*)+)?\Z")
    ref_form = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*)?\Z")

    context = portal.Context()
    context.defineParameter(
        "hardware_type",
        "Hardware type",
        portal.ParameterType.NODETYPE,
        "c6525-25g",
        longDescription="Baselines are those of one host class: measure on the type that yours were recorded on.",
    )
    context.defineParameter(
        "image",
        "Disk image",
        portal.ParameterType.IMAGE,
        images + "UBUNTU24-64-STD",
        longDescription="The set-up is for Ubuntu 24.04 and refuses others.",
    )
    context.defineParameter(
        "repository",
        "Repository",
        portal.ParameterType.STRING,
        "",
        longDescription="https://… of a fork to be set up from; empty: the one this profile is of.",
    )
    context.defineParameter(
        "ref",
        "Branch, tag or commit",
        portal.ParameterType.STRING,
        "",
        longDescription="Empty: that of the profile, or the repository's own branch.",
    )
    chosen = context.bindParameters()
    if not repository_form.match(chosen.repository):
        context.reportError(portal.ParameterError("A repository is named https://HOST/OWNER/NAME", ["repository"]))
    if not ref_form.match(chosen.ref):
        context.reportError(portal.ParameterError("This is no name of a branch, tag or commit", ["ref"]))
    if chosen.ref and not chosen.repository:
        context.reportWarning(
            portal.ParameterError("CloudLab's own clone is set to another version than the one chosen there", ["ref"])
        )
    context.verifyParameters()

    request = context.makeRequestRSpec()
    node = request.RawPC("lab")
    node.hardware_type = chosen.hardware_type
    node.disk_image = chosen.image
    # An argument that is empty stays one.
    words = ["sudo", "sh", "/local/repository/lab/cloudlab", '"' + chosen.repository + '"', '"' + chosen.ref + '"']
    node.addService(pg.Execute(shell="sh", command=" ".join(words)))  # noqa: S604 - the node's, and geni-lib's argument
    context.printRequestRSpec(request)

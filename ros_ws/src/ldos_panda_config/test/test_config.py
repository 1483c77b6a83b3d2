# Copyright (c) 2026 The pytest-ldos authors
#
# Permission is hereby granted, free of charge, to any person obtaining a copy
# of this software and associated documentation files (the "Software"), to deal
# in the Software without restriction, including without limitation the rights
# to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
# copies of the Software, and to permit persons to whom the Software is
# furnished to do so, subject to the following conditions:
#
# The above copyright notice and this permission notice shall be included in
# all copies or substantial portions of the Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
# IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
# FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
# THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
# LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
# OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
# THE SOFTWARE.

"""The files of the package agree with each other."""

from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import get_package_share_path
import pytest
import xacro
import yaml

SHARE = get_package_share_path('ldos_panda_config')
JOINTS = [f'panda_joint{number}' for number in range(1, 8)]


def description(sim, step_probe='false'):
    document = xacro.process_file(
        str(SHARE / 'urdf' / 'panda.urdf.xacro'), mappings={'sim': sim, 'step_probe': step_probe})
    return ElementTree.fromstring(document.toxml())


def parameters(name, node='/**'):
    return yaml.safe_load((SHARE / 'config' / name).read_text())[node]['ros__parameters']


def home():
    return yaml.safe_load((SHARE / 'config' / 'goals.yaml').read_text())['home']['joints']


@pytest.fixture(name='srdf')
def _srdf():
    return ElementTree.parse(SHARE / 'config' / 'panda.srdf').getroot()


@pytest.mark.parametrize(('sim', 'plugin'), [
    ('gz', 'gz_ros2_control/GazeboSimSystem'), ('mock', 'mock_components/GenericSystem')])
def test_the_hardware_is_that_of_the_simulation(sim, plugin):
    hardware = description(sim).find('ros2_control')
    assert hardware.findtext('hardware/plugin') == plugin
    assert [joint.get('name') for joint in hardware.findall('joint')] == JOINTS


def test_the_hardware_begins_at_home():
    initial = {
        joint.get('name'): float(joint.findtext("state_interface[@name='position']/param"))
        for joint in description('mock').findall('ros2_control/joint')}
    assert initial == home()


def test_an_unknown_simulation_is_refused():
    with pytest.raises(xacro.XacroException, match='neither gz nor mock'):
        description('unity')


@pytest.mark.parametrize(('sim', 'step_probe', 'plugins'), [
    ('gz', 'true', ['gz_ros2_control-system', 'ldos_gz_probe']),
    ('gz', 'false', ['gz_ros2_control-system']),
    ('mock', 'true', [])])
def test_gazebo_loads(sim, step_probe, plugins):
    found = description(sim, step_probe).findall('gazebo/plugin')
    assert [plugin.get('filename') for plugin in found] == plugins


def test_gazebo_is_given_the_controllers_and_simulated_time():
    paths = [each.text for each in description('gz').findall('gazebo/plugin/parameters')]
    names = ('ros2_controllers.yaml', 'gazebo.yaml')
    assert [Path(path) for path in paths] == [SHARE / 'config' / name for name in names]
    assert parameters('gazebo.yaml', 'controller_manager') == {'use_sim_time': True}


def test_every_moving_link_has_inertia():
    robot = description('gz')
    moving = [joint.find('child').get('link') for joint in robot.findall('joint')
              if joint.get('type') == 'revolute']
    heavy = {link.get('name') for link in robot.findall('link') if link.find('inertial')}
    assert len(moving) == 7
    assert set(moving) <= heavy


def test_ready_is_home(srdf):
    state = srdf.find("group_state[@name='ready']")
    assert {each.get('name'): float(each.get('value')) for each in state} == home()


def test_semantics_name_links_that_exist(srdf):
    links = {link.get('name') for link in description('gz').findall('link')}
    pairs = srdf.findall('disable_collisions')
    assert {pair.get(end) for pair in pairs for end in ('link1', 'link2')} <= links
    assert {link.get('name') for link in srdf.findall('group/link')} <= links


def test_both_ends_of_the_trajectory_action_name_the_same_joints():
    moveit = parameters('moveit_controllers.yaml')['moveit_simple_controller_manager']
    assert moveit['controller_names'] == ['panda_arm_controller']
    assert moveit['panda_arm_controller']['joints'] == JOINTS
    assert parameters('ros2_controllers.yaml', 'panda_arm_controller')['joints'] == JOINTS


def test_every_joint_has_limits():
    limits = parameters('joint_limits.yaml')['robot_description_planning']['joint_limits']
    assert list(limits) == JOINTS


def test_the_loop_runs_at_500_hz():
    assert parameters('ros2_controllers.yaml', 'controller_manager')['update_rate'] == 500

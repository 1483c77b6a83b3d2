"""Installs the command for ros2cli to find."""

from setuptools import setup

NAME = 'ldos_ros2cli'

setup(
    name=NAME,
    version='0.1.0',
    packages=[NAME],
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
    ],
    install_requires=['setuptools'],
    zip_safe=True,
    author='The pytest-ldos authors',
    maintainer='The pytest-ldos authors',
    description="The command `ros2 ldos`: pytest-ldos from ROS 2's own command line.",
    license='MIT',
    entry_points={'ros2cli.command': [f'ldos = {NAME}.command:LdosCommand']},
)

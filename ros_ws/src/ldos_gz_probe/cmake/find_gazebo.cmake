# Sets gazebo_libraries to what a plugin of Gazebo is linked with; empty where there is none.
#
# ROS 2 brings Gazebo in vendor packages, which put its own packages on CMake's path, under names without a version.
# So are the packages of Jetty and later; those of Harmonic itself have their major version in their names.

set(gazebo_libraries "")
find_package(gz_plugin_vendor QUIET)
find_package(gz_sim_vendor QUIET)
foreach(versions IN ITEMS ":" "2:8")
  string(REGEX REPLACE ":.*" "" plugin "gz-plugin${versions}")
  string(REGEX REPLACE ".*:" "gz-sim" sim "${versions}")
  find_package(${plugin} QUIET COMPONENTS register)
  find_package(${sim} QUIET)
  if(TARGET ${plugin}::register AND TARGET ${sim}::${sim})
    set(gazebo_libraries ${plugin}::register ${sim}::${sim})
    break()
  endif()
endforeach()

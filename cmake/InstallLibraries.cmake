# Installs the libraries that the programs need, and the licences of these and of the header-only libraries.
#
# In: programs, headers.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs}
     RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing
     PRE_EXCLUDE_REGEXES "^lib(c10|torch)" "^ld-linux" "^linux-vdso"
                         "^lib(c|m|mvec|dl|rt|pthread|util|resolv|anl|nsl)\\.so")
if(missing)
  message(FATAL_ERROR "${missing}: cannot be found, so that the installed programs would not start. Install "
                      "their packages, then build and install again.")
endif()

foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} file)
  set(folder lib/frostpipe)
  if(name MATCHES "^lib(stdc\\+\\+|gcc_s)\\.so")
    set(folder lib/frostpipe/gcc)
  endif()
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}" TYPE FILE RENAME ${name} FILES ${file})
  list(APPEND sources ${file} ${library})
endforeach()

# Debian's packages have their licences in /usr/share/doc. On other systems they have to be added by hand.
find_program(DPKG_QUERY dpkg-query)
if(NOT DPKG_QUERY)
  message(STATUS "There is no dpkg-query here: add the licences of ${libraries} to share/doc/frostpipe/licences")
  return()
endif()
execute_process(COMMAND ${DPKG_QUERY} --search ${sources} ${headers} OUTPUT_VARIABLE owners ERROR_QUIET)
string(REGEX MATCHALL "[^\n]+" owners "${owners}")
list(TRANSFORM owners REPLACE ":.*" "")
list(REMOVE_DUPLICATES owners)
foreach(package ${owners})
  file(REAL_PATH /usr/share/doc/${package}/copyright licence)
  if(EXISTS ${licence})
    file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/share/doc/frostpipe/licences" TYPE FILE RENAME ${package}
         FILES ${licence})
  endif()
endforeach()
# The common licences that those texts refer to.
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/share/doc/frostpipe/licences" TYPE DIRECTORY
     FILES /usr/share/common-licenses)

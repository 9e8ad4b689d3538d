# Installs a folder that runs on other machines: `cmake --install build --prefix DIR`, or `cpack -G TGZ` in the build
# folder.
#
#   bin/                     frostpipe, and the programs that `frostpipe serving`, `nets` and `bench` execute
#   lib/frostpipe/           the executors, the CUDA module and the libraries that all of these need, except LibTorch,
#                            CUDA, and those of every Linux
#   lib/frostpipe/gcc/       libstdc++ and libgcc_s, for a system that has none (executor_program.h)
#   share/doc/frostpipe/     documents and licences
#
# lib/ itself stays free for a LibTorch (find_torch.h).

set(tools frostpipe frostpipe-serving frostpipe-nets frostpipe-bench)
set(executors frostpipe-executor frostpipe-serving-executor frostpipe-nets-executor)

# The programs have an RPATH, which, unlike a RUNPATH, is also searched for the libraries that their libraries need.
foreach(program ${tools} ${executors})
  if(TARGET ${program})
    target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
    list(APPEND installed_programs $<TARGET_FILE:${program}>)
  endif()
endforeach()
# The system's folders, which else come last, come before our copies of GCC's libraries.
foreach(folder lib/${CMAKE_LIBRARY_ARCHITECTURE} lib64 lib)
  list(APPEND system_folders /${folder} /usr/${folder})
endforeach()
# An empty entry of an RPATH means the current folder, in which anybody may have put a library. CMake adds empty entries
# to the RPATH of a program if it has to replace that at installation. So the tools have the RPATH of the installed ones
# from the start.
set_target_properties(${tools} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON
                      INSTALL_RPATH "$ORIGIN/../lib/frostpipe;${system_folders};$ORIGIN/../lib/frostpipe/gcc")
install(TARGETS ${tools} RUNTIME DESTINATION bin)
# Programs that find this machine's LibTorch by their RPATH are installed as files, whose RPATH is then replaced.
function(frostpipe_install_beside_libraries target)  # a second argument OPTIONAL: it need not have been built
  install(PROGRAMS $<TARGET_FILE:${target}> DESTINATION lib/frostpipe ${ARGN})
  set(file "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/frostpipe/$<TARGET_FILE_NAME:${target}>")
  install(CODE "if(EXISTS \"${file}\")\n  file(RPATH_SET FILE \"${file}\" NEW_RPATH \"\\\$ORIGIN\")\nendif()")
endfunction()
foreach(target ${executors} frostpipe_cuda)
  if(TARGET ${target})
    frostpipe_install_beside_libraries(${target})
  endif()
endforeach()
# The pages link to each other, so all are installed.
install(FILES README.md LICENSE CHANGELOG.md CONTRIBUTING.md DESTINATION share/doc/frostpipe)
install(FILES bench/README.md DESTINATION share/doc/frostpipe/bench)
install(DIRECTORY docs DESTINATION share/doc/frostpipe)
# Headers of the header-only libraries, by which InstallLibraries.cmake finds their packages and licences.
foreach(header CLI/CLI.hpp nlohmann/json.hpp boost/config.hpp xxhash.h)
  string(MAKE_C_IDENTIFIER FROSTPIPE_FOLDER_OF_${header} folder)
  find_path(${folder} ${header})
  mark_as_advanced(${folder})
  list(APPEND headers ${${folder}}/${header})
endforeach()
install(CODE "set(programs ${installed_programs})")
install(CODE "set(headers ${headers})")
install(SCRIPT cmake/InstallLibraries.cmake)

set(CPACK_GENERATOR TGZ)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME frostpipe-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
include(CPack)

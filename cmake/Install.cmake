# The folder that runs on other machines: `cmake --install build --prefix DIR`, or `cpack -G TGZ` in the build folder.
#
#   bin/frostpipe                      the tool
#   lib/frostpipe/                     the executor, the CUDA module and the libraries that they need, but for LibTorch,
#                                      CUDA, and what every Linux has
#   lib/frostpipe/gcc/                 libstdc++ and libgcc_s, for a system that has none (executor_program.h)
#   share/doc/frostpipe/               documents and licences
#
# lib/ itself stays free for a LibTorch (find_torch.h).

# RPATH, not RUNPATH: it leads to what the libraries need, too.
foreach(program frostpipe frostpipe-executor)
  if(TARGET ${program})
    target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
    list(APPEND installed_programs $<TARGET_FILE:${program}>)
  endif()
endforeach()
# The system's folders, which else come last, come before our copies of GCC's libraries.
foreach(folder lib/${CMAKE_LIBRARY_ARCHITECTURE} lib64 lib)
  list(APPEND system_folders /${folder} /usr/${folder})
endforeach()
set_target_properties(frostpipe PROPERTIES
                      INSTALL_RPATH "$ORIGIN/../lib/frostpipe;${system_folders};$ORIGIN/../lib/frostpipe/gcc")
install(TARGETS frostpipe RUNTIME DESTINATION bin)
if(TARGET frostpipe-executor)
  set_target_properties(frostpipe-executor PROPERTIES INSTALL_RPATH "$ORIGIN")
  install(TARGETS frostpipe-executor RUNTIME DESTINATION lib/frostpipe)
endif()
if(TARGET frostpipe_cuda)
  set_target_properties(frostpipe_cuda PROPERTIES INSTALL_RPATH "")
  install(TARGETS frostpipe_cuda LIBRARY DESTINATION lib/frostpipe)
endif()
install(FILES README.md LICENSE CHANGELOG.md DESTINATION share/doc/frostpipe)
install(DIRECTORY docs DESTINATION share/doc/frostpipe)
# Of libraries that are headers alone, for their licences.
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

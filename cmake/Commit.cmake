# Writes a header that defines FROSTPIPE_COMMIT: 12 digits of the commit that is checked out, followed by "+dirty" if
# tracked files were changed since; "unknown" if there is no git, or the sources are no checkout of their own. A header
# that has this content already is not written again.
#
# In: GIT (the program; may be missing), SOURCE (the folder), HEADER (the file).
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH ${SOURCE} source)
  if(root STREQUAL source)
    # No lock is taken, since another git command may run at the same time.
    execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE}
                            describe --always --abbrev=12 --exclude=* --dirty=+dirty
                    RESULT_VARIABLE failed OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(commit ${described})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define FROSTPIPE_COMMIT \"@commit@\"\n" @ONLY)

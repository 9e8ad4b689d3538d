# Defines imported targets for LibTorch as its Python wheel unpacks it: Torch::cpu, and Torch::cuda if the wheel is for
# CUDA and a CUDA toolkit and NCCL 2.28 are found. (TorchConfig.cmake of a CUDA wheel refuses to configure on a machine
# without a toolkit or a GPU.)
#
# In: TORCH_ROOT, the folder with lib/libtorch_cpu.so and include/; default: .deps/torch, which scripts/setup links.
set(TORCH_ROOT "${CMAKE_SOURCE_DIR}/.deps/torch" CACHE PATH "Folder of LibTorch: .../site-packages/torch")
if(NOT EXISTS "${TORCH_ROOT}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "TORCH_ROOT is '${TORCH_ROOT}', which has no lib/libtorch_cpu.so. Run scripts/setup, or set "
                      "-DTORCH_ROOT=.../site-packages/torch, or configure the preset 'core', which needs no LibTorch.")
endif()
file(REAL_PATH "${TORCH_ROOT}" torch_root)
find_package(Threads REQUIRED)

function(frostpipe_import_torch_library name)
  add_library(torch_${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torch_${name} PROPERTIES IMPORTED_LOCATION "${torch_root}/lib/lib${name}.so")
endfunction()

frostpipe_import_torch_library(c10)
frostpipe_import_torch_library(torch_cpu)
add_library(Torch::cpu INTERFACE IMPORTED GLOBAL)
target_link_libraries(Torch::cpu INTERFACE torch_torch_cpu torch_c10 Threads::Threads)
# These folders are searched after the system's own, since the wheel has another version of fmt in include/fmt.
foreach(folder include include/torch/csrc/api/include)
  target_compile_options(Torch::cpu INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${torch_root}/${folder}>")
endforeach()
target_include_directories(Torch::cpu SYSTEM INTERFACE ${CMAKE_SOURCE_DIR}/cmake/gloo_names)
# With AT_PER_OPERATOR_HEADERS, as in PyTorch's own build, ATen's headers include only the operators that they use. Our
# sources do so, too (ATen/ops/NAME.h, ATen/TensorOperators.h). A file that uses few then compiles in half the time.
target_compile_definitions(Torch::cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO AT_PER_OPERATOR_HEADERS)
# The wheel's libraries find their own dependencies at run time by their RUNPATH, so the linker need not find them.
target_link_options(Torch::cpu INTERFACE "LINKER:--allow-shlib-undefined")

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND EXISTS "${torch_root}/lib/libtorch_cuda.so")
  # The wheel's own NCCL is searched first: LibTorch's classes were compiled with its headers.
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR
               HINTS ${torch_root}/../nvidia/nccl/lib ${CUDAToolkit_LIBRARY_DIR})
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${torch_root}/../nvidia/nccl/include ${CUDAToolkit_INCLUDE_DIRS})
  if(NCCL_INCLUDE_DIR)
    file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_version REGEX "^#define NCCL_(MAJOR|MINOR) ")
    string(REGEX REPLACE "[^0-9;]" "" nccl_version "${nccl_version}")
    list(JOIN nccl_version . nccl_version)
    if(NOT nccl_version VERSION_EQUAL 2.28)
      message(STATUS "The build is without GPUs: ${NCCL_INCLUDE_DIR}/nccl.h must be NCCL 2.28, with which LibTorch "
                     "2.11 was built, is ${nccl_version}. Install nvidia-nccl beside torch, with whose wheel it comes")
    endif()
  endif()
  if(NCCL_LIBRARY AND nccl_version VERSION_EQUAL 2.28)
    frostpipe_import_torch_library(c10_cuda)
    add_library(Torch::cuda INTERFACE IMPORTED GLOBAL)
    target_compile_definitions(Torch::cuda INTERFACE USE_C10D_NCCL)
    target_include_directories(Torch::cuda SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
    # libtorch_cuda registers its kernels when it is loaded, so it is linked even if no symbol of it is used.
    target_link_libraries(Torch::cuda INTERFACE Torch::cpu torch_c10_cuda CUDA::cudart ${NCCL_LIBRARY}
      "-Wl,--no-as-needed,${torch_root}/lib/libtorch_cuda.so,--as-needed")
  endif()
endif()

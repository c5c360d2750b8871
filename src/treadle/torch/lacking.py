"""What PyTorch has and `treadle.torch` has not: what to use instead, or why.

`torch.missing()` lists it, an AttributeError says it, and the reference shows it. A test compares
these names with PyTorch's.
"""

from __future__ import annotations

# Advice: the names, as they stand behind `torch.`.
_NAMES = {
    "torch.nn.functional has it": (
        "affine_grid_generator convolution embedding_bag embedding_renorm_ feature_alpha_dropout_ "
        "feature_dropout_ grid_sampler grid_sampler_2d grid_sampler_3d poisson_nll_loss "
        "triplet_margin_loss"
    ),
    "the modules torch.nn.LSTM, GRU, RNN, LSTMCell, GRUCell and RNNCell have the weights": (
        "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"
    ),
    'write torch.FloatTensor(…).cuda(), or torch.tensor(…, device="cuda")': (
        "cuda.BFloat16Tensor cuda.BoolTensor cuda.ByteTensor cuda.CharTensor cuda.DoubleTensor "
        "cuda.FloatTensor cuda.HalfTensor cuda.IntTensor cuda.LongTensor cuda.ShortTensor"
    ),
    "memory comes from treadle's pool: torch.cuda.memory_stats, empty_cache": (
        "cuda.CUDAPluggableAllocator cuda.MemPool cuda.caching_allocator_alloc "
        "cuda.caching_allocator_delete cuda.caching_allocator_disabled "
        "cuda.caching_allocator_enable cuda.change_current_allocator cuda.device_memory_used "
        "cuda.get_allocator_backend cuda.get_per_process_memory_fraction cuda.host_memory_stats "
        "cuda.host_memory_stats_as_nested_dict cuda.memory_snapshot "
        "cuda.memory_stats_as_nested_dict cuda.reset_accumulated_host_memory_stats "
        "cuda.reset_accumulated_memory_stats cuda.reset_max_memory_cached "
        "cuda.reset_peak_host_memory_stats cuda.set_per_process_memory_fraction cuda.use_mem_pool"
    ),
    "the cuda-bindings package and nvidia-smi say it": (
        "cuda.CudaError cuda.DeferredCudaCallError cuda.ExternalStream cuda.GreenContext "
        "cuda.StreamContext cuda.check_error cuda.clock_rate cuda.cudaStatus cuda.cudart "
        "cuda.current_blas_handle cuda.current_solver_handle cuda.get_gencode_flags "
        "cuda.get_stream_from_external cuda.get_sync_debug_mode cuda.is_tf32_supported "
        "cuda.list_gpu_processes cuda.memory_usage cuda.power_draw cuda.set_sync_debug_mode "
        "cuda.temperature"
    ),
    "torch.autograd.set_detect_anomaly looks for NaN in gradients": (
        "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled"
    ),
    "torch.get_autocast_dtype and torch.is_autocast_enabled take the device's type": (
        "get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cpu_enabled"
    ),
    "torch.testing.assert_close": "testing.assert_allclose",
    "a backward pass is one thread": "autograd.set_multithreading_enabled",
    "x.permute, reshape and torch.einsum": "func.rearrange",
    "write a function of tensors: there are no subclasses": "Tensor.as_subclass",
    "batch norms keep running values: set module.track_running_stats": (
        "func.replace_all_batch_norm_modules_"
    ),
    "its functions are torch's": "functional classproperty",
    "treadle.profile() measures, and its table and trace show all kernels": (
        "autograd.profiler autograd.profiler_legacy autograd.profiler_util cuda.nvtx cuda.profiler "
        "utils.bottleneck cuda.jiterator"
    ),
    "torch.compile records what a function does, and replays it": (
        "cuda.CUDAGraph cuda.graph cuda.graphs cuda.graph_pool_handle cuda.make_graphed_callables"
    ),
    "hooks of saved tensors are not there: torch.utils.checkpoint saves memory": "autograd.graph",
    "torch.func.jvp computes derivatives along a direction": "autograd.forward_ad",
    "functions need no such form here: torch.compile takes them as they are": (
        "func.functionalize"
    ),
    "torch.distributed has collectives of processes": "cuda.comm cuda.nccl",
    "td.kernel and td.cuda_module compile kernels": "utils.cpp_extension",
    "sparse tensors are COO, CSR or CSC here, without blocks: torch.sparse_coo_tensor": (
        "sparse_bsc sparse_bsc_tensor sparse_bsr sparse_bsr_tensor Tensor.to_sparse_bsc "
        "Tensor.to_sparse_bsr"
    ),
    "of sparse tensors: x.indices().clone(), x.values().clone()": (
        "indices_copy values_copy ccol_indices_copy col_indices_copy crow_indices_copy "
        "row_indices_copy"
    ),
    "make another sparse tensor: torch.sparse_coo_tensor(x.indices(), x.values(), size)": (
        "resize_as_sparse_ Tensor.resize_as_sparse_ Tensor.sparse_resize_ "
        "Tensor.sparse_resize_and_clear_"
    ),
    "torch.sparse.mm and torch.sparse.addmm multiply sparse and dense matrices": (
        "hsmm hspmm saddmm sspaddmm Tensor.sspaddmm"
    ),
    "torch.sparse.mm has products of sparse matrices, and torch.sparse_coo_tensor makes them": (
        "sparse.as_sparse_gradcheck sparse.to_sparse_semi_structured "
        "sparse.SparseSemiStructuredTensor sparse.SparseSemiStructuredTensorCUSPARSELT "
        "sparse.SparseSemiStructuredTensorCUTLASS"
    ),
    "td.quant has quantized weights (ggml's formats), and products straight from their blocks": (
        "dequantize empty_quantized fake_quantize_per_channel_affine "
        "fake_quantize_per_tensor_affine int_repr qint32 qint8 quantization quantize_per_channel "
        "quantize_per_tensor quantize_per_tensor_dynamic quint2x4 quint4x2 quint8 nn.intrinsic "
        "nn.qat nn.quantizable nn.quantized Tensor.dequantize Tensor.int_repr "
        "Tensor.q_per_channel_axis Tensor.q_per_channel_scales Tensor.q_per_channel_zero_points "
        "Tensor.q_scale Tensor.q_zero_point Tensor.qscheme ao"
    ),
    "arrays have no elements of this dtype": (
        "bit bits16 bits1x8 bits2x4 bits4x2 bits8 chalf complex32 float4_e2m1fn_x2 float8_e4m3fn "
        "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int1 int2 int3 int4 int5 int6 "
        "int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 Tensor.chalf"
    ),
    "nested tensors: pad sequences (torch.nn.utils.rnn.pad_sequence) and mask": (
        "nested jagged Tensor.to_padded_tensor"
    ),
    "PyTorch itself no longer has what it did: torch.linalg has it": (
        "eig lstsq matrix_rank solve symeig Tensor.eig Tensor.lstsq Tensor.solve Tensor.symeig"
    ),
    "PyTorch has deprecated it: x.reshape, or torch.nn.functional, say the same": (
        "Tensor.resize Tensor.resize_as Tensor.volatile Tensor.reinforce Tensor.name "
        "Tensor.output_nr legacy_contiguous_format set_default_tensor_type "
        "frobenius_norm nuclear_norm functional.Variable"
    ),
    "memory is the tensor's own, without a storage behind it: views share it, and x.data_ptr() is "
    "its address": (
        "is_storage storage Tensor.storage Tensor.storage_type Tensor.untyped_storage Tensor.set_ "
        "Tensor.is_set_to Tensor.dim_order from_file"
    ),
    "TorchScript, tracing and export are PyTorch's own: torch.compile, td.compile": (
        "jit fx export ops package classes fork wait cond while_loop SymBool SymFloat SymInt"
    ),
    "operations of one's own are functions of tensors, td.kernel, or torch.autograd.Function": (
        "library overrides"
    ),
    "concurrent.futures has them: calls do not wait for the device anyway": "futures",
    "download the file: torch.load takes its path": "utils.model_zoo",
    "torch.__version__ is the version": "torch_version",
    "td.profile records what runs": "monitor",
    "it is not for one process: start one a device": (
        "prepare_multiprocessing_environment is_distributed Tensor.is_distributed"
    ),
    "torch.from_dlpack and torch.to_dlpack do it": "utils.dlpack",
    "hooks are removed by what register_hook returns: handle.remove()": "utils.hooks",
    "torch.func takes nested lists, tuples and dicts as they are": "utils._pytree",
    "td.profile records what runs, and `treadle bench` measures": (
        "utils.benchmark profiler profiler_allow_cudagraph_cupti_lazy_reinit_cuda12"
    ),
    'devices are "cpu", "cuda", "webgpu" and "dawn": torch.device, td.devices()': (
        "cpu mtia get_device_module Tensor.ipu Tensor.mtia Tensor.xpu Tensor.to_mkldnn"
    ),
    "it is a setting of a library that is not used here": ("init_num_threads get_file_path"),
    "weights from the Hub are read by other packages: load their state dict": "hub",
    "draws are those of treadle.torch's functions": "quasirandom thread_safe_generator "
    "random.thread_safe_generator",
    "torch.linalg.solve takes symmetric matrices, too, and torch.linalg.eigh says their signs": (
        "linalg.ldl_factor linalg.ldl_factor_ex linalg.ldl_solve"
    ),
    "Bessel functions are those of orders 0 and 1": "special.airy_ai",
    "torch.nn.LocalResponseNorm divides by what neighbouring channels have": "nn.CrossMapLRN2d",
    "lazy layers have no parameters before their first input": (
        "nn.UninitializedBuffer nn.UninitializedParameter"
    ),
    "torch.nn.functional.scaled_dot_product_attention chooses its kernel by itself": "nn.attention",
    "gradients come from torch.autograd.grad": "nn.grad nn.functional.grad",
    "torch.func.functional_call runs a module with other parameters": "nn.utils.stateless",
    "parametrize by a mask: torch.nn.utils.parametrize.register_parametrization": "nn.utils.prune",
    "tensors are row-major, and kernels choose layouts": (
        "nn.utils.convert_conv2d_weight_memory_format nn.utils.memory_format "
        "nn.utils.convert_conv3d_weight_memory_format"
    ),
    "a product for each group: torch.bmm, or a loop over the groups": (
        "nn.functional.grouped_mm nn.functional.scaled_grouped_mm nn.functional.scaled_mm"
    ),
    "masked tensors: torch.where and masked_fill": "masked",
    "it is for internal use in PyTorch": (
        "Tensor.index hash_tensor Tensor.hash_tensor slice_inverse Tensor.slice_inverse "
        "segment_reduce lobpcg Tensor.map_ Tensor.map2_ Tensor.module_load Tensor.record_stream "
        "Tensor.grad_dtype Tensor.const_data_ptr nn.Container nn.common_types nn.factory_kwargs "
        "nn.NLLLoss2d nn.functional.ScalingType nn.functional.SwizzleType windows cpp types "
        "testing.FileCheck clear_autocast_cache is_autocast_cache_enabled "
        "set_autocast_cache_enabled autograd.NestedIOFunction autograd.enforce_grad_layout_policy "
        "func.debug_unwrap optim.swap_in_optimizer_params_and_state "
        "utils.data.argument_validation utils.data.functional_datapipe "
        "utils.data.guaranteed_datapipes_determinism utils.data.non_deterministic "
        "utils.data.runtime_validation utils.data.runtime_validation_disabled utils.data.DataChunk"
    ),
    "data pipes: an iterable dataset does the same": (
        "utils.data.DFIterDataPipe utils.data.IterDataPipe utils.data.MapDataPipe"
    ),
    "autocast is torch.autocast(device_type, dtype)": (
        "get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled "
        "is_autocast_xla_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype "
        "set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled"
    ),
}


def _by_name() -> dict[str, str]:
    return {name: advice for advice, names in _NAMES.items() for name in names.split()}


def missing(name: str | None = None) -> dict[str, str] | str | None:
    """What PyTorch has and this has not, with what to use instead; or of one name.

    >>> import treadle.torch as torch
    >>> "sparse_bsr_tensor" in torch.missing()
    True
    """
    found = _by_name()
    return found if name is None else found.get(name)


def within(space: str) -> dict[str, str]:
    """The same of the names of one space, as `nn.functional`, without it."""
    start = f"{space}." if space else ""
    return {
        name.removeprefix(start): advice
        for name, advice in _by_name().items()
        if name.startswith(start) and "." not in name.removeprefix(start)
    }


# What is here and differs: how, and the names.
_DIFFERENT = {
    "indices on a device are not read: one outside its axis gives 0, and a write there is dropped "
    "(under TREADLE_CHECK=1 they are read, and raise an IndexError)": (
        "gather index_add index_copy index_fill index_put index_reduce index_select scatter "
        "scatter_add scatter_reduce take take_along_dim Tensor.__getitem__ Tensor.__setitem__ "
        "Tensor.gather Tensor.index_add Tensor.index_add_ Tensor.index_copy Tensor.index_copy_ "
        "Tensor.index_fill Tensor.index_fill_ Tensor.index_put Tensor.index_put_ "
        "Tensor.index_reduce Tensor.index_reduce_ Tensor.index_select Tensor.put Tensor.put_ "
        "Tensor.scatter Tensor.scatter_ Tensor.scatter_add Tensor.scatter_add_ "
        "Tensor.scatter_reduce Tensor.scatter_reduce_ Tensor.take Tensor.take_along_dim"
    ),
    "rows are always exchanged: pivot=False is refused": (
        "linalg.lu linalg.lu_factor linalg.lu_factor_ex lu Tensor.lu"
    ),
    "the drivers gelsd, gelss and gelsy are one, by singular values": "linalg.lstsq",
    "driver has no effect": "linalg.svd linalg.svdvals",
    "compute_mode has no effect": "cdist",
    "of another dtype it is a copy of the bits, and both dtypes have one size": "Tensor.view",
    "further elements are zeros in new memory": "Tensor.resize_ Tensor.resize_as_ resize_as_",
    "memory is the array that the tensor is a view of, and offsets begin there": (
        "as_strided as_strided_scatter Tensor.as_strided Tensor.as_strided_scatter"
    ),
    "align_to_window has no effect": "stft Tensor.stft",
    "it is an error when it is made: gradients of embeddings are dense": "optim.SparseAdam",
    "indices are looked at on the CPU, also without check_invariants": (
        "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor"
    ),
    "the numbers drawn for a seed are treadle's": (
        "Tensor.bernoulli_ Tensor.cauchy_ Tensor.exponential_ Tensor.geometric_ "
        "Tensor.log_normal_ Tensor.multinomial Tensor.normal_ Tensor.random_ Tensor.uniform_ "
        "bernoulli binomial multinomial normal poisson rand rand_like randint randint_like randn "
        "randn_like randperm Generator manual_seed nn.functional.dropout nn.Dropout"
    ),
    "one generator serves all devices; a state is 16 bytes": (
        "get_rng_state set_rng_state random.get_rng_state random.set_rng_state "
        "cuda.get_rng_state cuda.set_rng_state"
    ),
    "writing the view writes the tensor; reading it computes it, so that it has no strides of the "
    "tensor's memory, and kernels write into copies of it": (
        "view_as_complex view_as_real real imag Tensor.real Tensor.imag"
    ),
    "conjugates are computed, not marked": (
        "conj resolve_conj resolve_neg is_conj is_neg Tensor.conj Tensor.resolve_conj "
        "Tensor.resolve_neg Tensor.is_conj Tensor.is_neg"
    ),
    "elements lie in the order of the axes' strides; gaps between them are not kept": (
        "empty_strided Tensor.new_empty_strided"
    ),
    "tensors are made in row-major order, whatever format is asked for": (
        "channels_last channels_last_3d Tensor.contiguous memory_format preserve_format"
    ),
    'they are treadle\'s, whose names are "treadle.float32" and "float32"': "dtype",
    "it is the tensor itself: uploads have memory of their own": "Tensor.pin_memory",
    "it is a RuntimeError: processes do not share memory": "Tensor.share_memory_",
    "it is False: what is computed in torch.inference_mode() is a tensor as others, and may be "
    "used for gradients later": "is_inference Tensor.is_inference",
    "devices without addresses (webgpu, dawn) have none": "Tensor.data_ptr",
    "the name is PyTorch's for the usual operations, and treadle's for others": "Tensor.grad_fn",
    "every group of classes is computed for all rows": "nn.AdaptiveLogSoftmaxWithLoss",
    "gradients are dense, also with `sparse=True`": (
        "nn.functional.embedding nn.functional.embedding_bag nn.Embedding nn.EmbeddingBag"
    ),
    "`options` changes nothing: scores are computed whole": (
        "nn.functional.linear_cross_entropy nn.LinearCrossEntropyLoss nn.LinearCrossEntropyOptions"
    ),
    "it has no parameters before its first input, after which an optimizer is made": (
        "nn.LazyBatchNorm1d nn.LazyBatchNorm2d nn.LazyBatchNorm3d nn.LazyConv1d nn.LazyConv2d "
        "nn.LazyConv3d nn.LazyConvTranspose1d nn.LazyConvTranspose2d nn.LazyConvTranspose3d "
        "nn.LazyInstanceNorm1d nn.LazyInstanceNorm2d nn.LazyInstanceNorm3d nn.LazyLinear"
    ),
    "`enable_nested_tensor` and `mask_check` have no effect": "nn.TransformerEncoder",
    "the parameters have their usual initial values": "nn.utils.skip_init",
    "`differentiable=True` is refused; the other ways of computing a step are one kernel": (
        "optim.Adadelta optim.Adagrad optim.Adam optim.Adamax optim.AdamW optim.ASGD optim.NAdam "
        "optim.RAdam optim.RMSprop optim.Rprop optim.SGD"
    ),
    "tensors of devices that are not CUDA's are those of the CPU in the file, and views have "
    "elements of their own; classes are saved by their names here, so that PyTorch reads states, "
    "not whole modules": "save",
    "of whole modules that PyTorch has saved the layers become those here; it is refused if they "
    "have hooks": "load",
    "workers are threads": "utils.data.DataLoader",
    "it holds for tensors on all devices": "amp.autocast autocast",
    "a module whose results are differentiated runs as it is: compile the whole step; backends and "
    "modes are accepted": "compile",
    "it is noted: kernels on the CPU use all processors that the process has": (
        "get_num_threads set_num_threads"
    ),
    "it is noted: kernels give the same results at each run, but for sums by atomics": (
        "use_deterministic_algorithms"
    ),
    "a device has one stream, and work is in order": (
        "Stream cuda.Stream cuda.current_stream cuda.default_stream cuda.set_stream cuda.stream"
    ),
    "lazy tensors that nobody has asked for are not part of what is measured": ("Event cuda.Event"),
    "on devices without 64-bit integers Python's integers and indices have 32 bits": (
        "tensor arange randint argmax argmin argsort nonzero topk sort"
    ),
}


def differences() -> dict[str, str]:
    """How names that are here differ from PyTorch's."""
    return {name: words for words, names in _DIFFERENT.items() for name in names.split()}

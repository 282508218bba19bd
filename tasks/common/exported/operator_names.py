"""The operators of exported models, by the ending of the graph's file.

``tests/common/exported/test_operators.py`` exports every kind of model and says which names are missing here, and which
nothing holds.
"""

_ONNX = """
    Abs Add And Cast Clip Compress Concat Cos CumSum DequantizeLinear Div DynamicQuantizeLinear Equal Erf Exp
    Expand Floor Gather GatherND Greater GreaterOrEqual Identity LayerNormalization Less LessOrEqual MatMul
    MatMulInteger Max Mul NonZero Pow Range Reciprocal ReduceMax ReduceMean ReduceSum Relu Reshape Shape Sigmoid
    Sin Slice Softmax Split Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where
"""
_PADDLE_2 = """
    abs assign_value cast clip concat cos cumsum dropout elementwise_add elementwise_div elementwise_floordiv
    elementwise_max elementwise_mul elementwise_pow elementwise_sub equal exp expand_v2 feed fetch fill_any_like
    fill_constant flatten_contiguous_range gelu greater_equal greater_than index_select layer_norm less_equal
    less_than logical_and lookup_table_v2 matmul_v2 p_norm range reduce_max reduce_mean reduce_sum relu
    reshape2 roll rsqrt scale shape silu sin slice softmax sqrt square squeeze2 stack tanh
    thresholded_relu transpose2 unbind unsqueeze2 where
"""
# Dialects have numbers: 0 is that of programs, 1 of operators. a_: kinds of attributes, t_: kinds of values.
_PADDLE_3 = """
    0.a_array 0.a_bool 0.a_f32 0.a_f64 0.a_i32 0.a_i64 0.a_str 0.combine 0.split 0.t_bool 0.t_dtensor 0.t_f32
    0.t_f64 0.t_i32 0.t_i64 0.t_ui8 0.t_vec 1.a_dtype 1.a_intarray 1.a_place 1.abs 1.add 1.arange
    1.assign_value_ 1.cast 1.clip 1.concat 1.cos 1.cumsum 1.data 1.divide 1.dropout 1.elementwise_pow
    1.embedding 1.equal 1.exp 1.expand 1.fetch 1.flatten 1.floor_divide 1.full 1.full_int_array 1.full_like
    1.full_with_tensor 1.gelu 1.greater_equal 1.greater_than 1.index_select 1.layer_norm 1.less_equal
    1.less_than 1.logical_and 1.matmul 1.max 1.maximum 1.mean 1.multiply 1.p_norm 1.relu 1.reshape 1.roll
    1.rsqrt 1.scale 1.shape64 1.silu 1.sin 1.slice 1.softmax 1.sqrt 1.square 1.squeeze
    1.stack 1.subtract 1.sum 1.tanh 1.thresholded_relu 1.transpose 1.unbind 1.unsqueeze 1.where block_0 p
    region_0
"""
OPERATORS = {
    ".onnx": frozenset(_ONNX.split()),
    ".pdmodel": frozenset(_PADDLE_2.split()),
    ".json": frozenset(_PADDLE_3.split()),
}

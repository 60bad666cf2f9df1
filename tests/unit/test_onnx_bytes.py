"""The bytes of a graph are those that the package onnx writes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from qmd.inference.embedded import graph as onnx_bytes


def test_nodes_tensors_and_models_are_as_onnx_writes_them() -> None:
    attributes = {"axis": -1, "epsilon": 1e-5, "perm": [0, 2, 1, 300]}
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    packed = bytes([0x88, 0x21])
    uint4 = TensorProto(name="w", data_type=TensorProto.UINT4, dims=[2, 2], raw_data=packed)
    graph = helper.make_graph(
        [helper.make_node("Kind", ["a", "b"], ["c"], domain="com.microsoft", **attributes)],
        "e5",
        [helper.make_tensor_value_info("a", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, ["batch", 384])],
        [numpy_helper.from_array(array, "b"), uint4],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
        producer_name="qmd",
    )
    assert model.SerializeToString(deterministic=True) == onnx_bytes.onnx_model(
        "e5",
        [onnx_bytes.onnx_node("Kind", ["a", "b"], ["c"], "com.microsoft", attributes)],
        [
            onnx_bytes.onnx_tensor("b", (2, 3), onnx_bytes.INT64, array.tobytes()),
            onnx_bytes.onnx_tensor("w", (2, 2), onnx_bytes.UINT4, packed),
        ],
        [onnx_bytes.onnx_value("a", onnx_bytes.INT64, ["batch", "tokens"])],
        [onnx_bytes.onnx_value("c", onnx_bytes.FLOAT, ["batch", 384])],
        ir_version=10,
        opsets={"": 21, "com.microsoft": 1},
    )

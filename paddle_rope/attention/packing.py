"""Packed sequences: several texts in one row, told apart by ``segment_ids`` ``[batch, seq]``."""

import paddle


def check_segments(segment_ids, batch, seq, side_by_side=False):
    """Raise ValueError unless ``segment_ids`` is integer ``[batch, seq]``, if asked with equal ids side by side.

    In static graphs, where sizes are not known, only the dtype is checked.
    """
    if paddle.in_dynamic_mode() and list(segment_ids.shape) != [batch, seq]:
        raise ValueError(f"segment_ids must be [batch, seq] = {[batch, seq]}, got {list(segment_ids.shape)}")
    if segment_ids.dtype not in (paddle.int32, paddle.int64):
        raise ValueError(f"segment_ids must be int32 or int64, got {segment_ids.dtype}")
    if side_by_side and paddle.in_dynamic_mode():
        for row in segment_ids.numpy():
            if 1 + (row[1:] != row[:-1]).sum() != len(set(row.tolist())):
                raise ValueError("linear attention needs the tokens of a segment side by side; segment_ids has gaps")

"""Which examples make a batch: texts of like length, so that little is computed on padding, or whole batches."""

import numpy as np
from paddle.io import BatchSampler, DistributedBatchSampler


class LengthGroupedBatchSampler(DistributedBatchSampler):
    """Shuffles, then sorts by length within windows of ``window`` batches, then shuffles the batches.

    The order depends on the seed and the epoch alone; of ``num_replicas`` processes each takes its share of the
    batches. ``lengths`` has the length of each example, in the order of the data set.
    """

    def __init__(self, lengths, batch_size, seed=0, num_replicas=1, rank=0, window=50):
        self.lengths = np.asarray(lengths)
        self.seed = seed
        self.window = window
        super().__init__(self.lengths, batch_size, num_replicas=num_replicas, rank=rank, shuffle=True)

    def __iter__(self):
        random = np.random.RandomState((self.seed * 1000003 + self.epoch) % 2**32)
        order = random.permutation(len(self.lengths))
        step = self.batch_size * self.nranks  # the processes' batches of one step are cut from one stretch
        if self.nranks > 1:
            order = np.concatenate([order, np.resize(order, -len(order) % step)])
        stretches = []
        for begin in range(0, len(order), step * self.window):
            part = order[begin : begin + step * self.window]
            part = part[np.argsort(self.lengths[part], kind="stable")]
            stretches += [part[i : i + step] for i in range(0, len(part), step)]
        for index in random.permutation(len(stretches)):
            yield stretches[index][self.local_rank :: self.nranks].tolist()


class InOrder(BatchSampler):
    """The numbers of the batches of one process, one at a time, in their order: of ``total`` batches of all
    ``num_replicas`` processes from the batch ``first`` on, those of the process ``rank``."""

    def __init__(self, total, first=0, num_replicas=1, rank=0):
        self.total, self.first, self.num_replicas, self.rank = total, first, num_replicas, rank

    def __iter__(self):
        return ([index] for index in range(self.first + self.rank, self.total, self.num_replicas))

    def __len__(self):
        return self.total // self.num_replicas  # with the ones before the first: PaddleNLP counts steps by it

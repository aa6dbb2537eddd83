// Package fair says whose batches should make way in memory that several jobs share.
// It is the rule and what it is reckoned from; the cache does not ask it yet.
//
// # The rule
//
// What is short is divided by waiting, in this order:
//
//  1. No job's ranks wait more than they would with 1/n of memory, source and
//     workers for themselves. One that waits more is owed. As long as it holds no
//     more than its 1/n of memory, nothing of it makes way for others, and what it
//     brings takes the place of what others hold that do not wait, or that have
//     more than their own 1/n. If it waits for workers too, then as long as its
//     fills are less than 1/n of them, no other job has more than that: a worker
//     that is busy cannot be had back.
//  2. Within that the sum of waiting is least. What a job lacks and has ready before
//     it asks costs nobody any time, so the batches of such a job make way before
//     those of one that waits for what it lacks; and of two that wait, one that has
//     more than its 1/n gives where a byte saves clearly more.
//  3. Within that fills are least: what is worth least goes, whoever's it is. But an
//     open that waits takes its own job's batches first, where 1 and 2 say nothing
//     else: it is not the others' fault that it was not foreseen.
//
// # Why it holds
//
// With 1/n of memory a job keeps the same batches as it would alone, and those are
// its best, as of one job what is worth least goes first. With 1/n of the workers
// what it lacks is made as quickly as alone. So at its 1/n it waits no more than
// alone; below it either it waits no more all the same, or it is owed, and then it
// gains with each batch that it brings and loses none. There is always something to
// take, as not all others hold less than theirs.
//
// What a job waits falls evenly with each batch that it has, down to where it waits
// no more, so the sum is least where no move of one batch makes it less, and 2 makes
// each such move. The test of the rule tries all divisions of memory in small cases,
// and comes from each to the best.
//
// All ranks of a job count as one: a step of which one batch lacks keeps all of them
// waiting, and that is a wait of the job. Its batches that are opened last go first,
// and the batches of one step are opened together, so they go together.
package fair

// Package fair says which job's batches are evicted from memory that several jobs share.
//
// # The rule
//
// Memory is divided by waiting, under a policy that knows jobs. A job waits if some of its
// opens do, or if it has no more than its due and would wait for whatever it lost, as none of
// its opens is foreseen; its due is 1/n of memory, of n jobs.
//
//  1. A job that waits and has no more than its due keeps it.
//  2. One that waits takes from those that do not; if it has less than its due, from
//     those too that wait and have more than theirs. One that does not wait takes
//     nothing from those that do, once it has what is made ready ahead of its readers.
//  3. Otherwise the batch that is worth least goes, of whichever job.
//
// A batch that is made ready ahead is not taken by 2: that would only move the wait.
//
// # Why it holds
//
// A job keeps those of its batches that are worth most, as those worth least go first.
// So with its due it waits no more than it would with 1/n of memory for itself. With less,
// either it does not wait, or it gains with each batch that it brings and loses none, as
// not all other jobs have less than their due.
//
// The wait of a job falls evenly with each batch that it has, down to none. So the sum of
// all waits is least where jobs that do not wait have no more than they need for that, and
// jobs that wait have the batches worth most; 2 moves batches towards the one, 3 towards
// the other. Where no job waits only 3 applies, and makes fills
// fewest. The test of the rule tries all divisions of memory in small cases, and comes
// from each to the best.
//
// An open that waits takes its own job's batches before others' only by 3: they are
// worth less than the others' if it opens at random. Where its job has less than its
// due, to do so always would keep it there.
//
// All ranks of a job count as one: a step of which one batch lacks keeps all of them
// waiting, and that is a wait of the job. Its batches that are opened last go first,
// and the batches of one step are opened together, so they go together.
package fair

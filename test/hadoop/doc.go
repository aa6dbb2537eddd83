// Package hadoop has the jars of a real HDFS, and programs of ours that use
// them: Read.java reads as Hadoop's clients do, Sequence.java writes
// SequenceFiles. Rehearse.java is for the archive of classes with which all of
// them start (see prepare).
package hadoop

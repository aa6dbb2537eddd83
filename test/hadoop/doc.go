// Package hadoop has the jars of a real HDFS, and programs of ours that use
// them: Read.java reads as Hadoop's clients do, Sequence.java writes
// SequenceFiles.
package hadoop

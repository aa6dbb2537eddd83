// Package spark is for applications of Spark with the plug-in and without. They want PySpark,
// some 430 MB, which prepare installs below build: tests are built with the tag spark, by make
// spark, and make bench has the rows of TeraSort. Jobs.java is the application of the tests;
// Tera.java and sort.py are those that are measured.
package spark

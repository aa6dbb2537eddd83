// Package spark is for the tests of the plug-in for Spark, which are built with the tag
// spark: they want PySpark, some 430 MB, which make spark installs below build. Jobs.java
// is the application that they run.
package spark

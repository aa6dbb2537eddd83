package rankfs.spark;

import java.io.Closeable;
import java.io.FileInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * The job of the pool that is an application's. The driver makes it, has its hold open as long as
 * the application lives, and removes it; a driver that is killed leaves that to the pool.
 */
class Job {
  private final Path dir;
  private Closeable hold;

  Job(Path dir) {
    this.dir = dir;
  }

  /** Shuffles of two applications have the same numbers, so that a job is the application's alone. */
  void make() throws IOException {
    try {
      Files.createDirectory(dir);
    } catch (FileAlreadyExistsException e) {
      throw new IOException(
          "make " + dir + ": another application has it, or had it and was killed: set "
              + Settings.DIR + " to another name, or remove it with rm -r", e);
    } catch (NoSuchFileException e) {
      throw noPool("the directory that it is to be in is not there", e);
    }
    try {
      hold = new FileInputStream(dir.resolve("hold").toFile());
    } catch (FileNotFoundException e) {
      Files.delete(dir);
      throw noPool("it is no job, as it has no hold", e);
    }
  }

  private IOException noPool(String why, IOException cause) {
    return new IOException(
        "make " + dir + ": " + why + ": mount rankfs with --pool-ram there, or set "
            + Settings.DIR + " to a name in the directory shuffle of a mount", cause);
  }

  void removeShuffle(int shuffle) throws IOException {
    try (DirectoryStream<Path> stages = Files.newDirectoryStream(dir, Stage.allOf(shuffle))) {
      for (Path stage : stages) {
        removeAll(stage);
      }
    } catch (NoSuchFileException e) {
      // The application has ended, and its job is removed.
    }
  }

  void remove() throws IOException {
    if (hold != null) {
      hold.close();
      removeAll(dir);
    }
  }

  private static void removeAll(Path dir) throws IOException {
    Files.walkFileTree(dir, new SimpleFileVisitor<>() {
      @Override
      public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
        Files.deleteIfExists(file);
        return FileVisitResult.CONTINUE;
      }

      @Override
      public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
        if (e instanceof NoSuchFileException) {
          return FileVisitResult.CONTINUE; // a task that has ended removed it
        }
        throw e;
      }

      @Override
      public FileVisitResult postVisitDirectory(Path dir, IOException e) throws IOException {
        if (e != null) {
          throw e;
        }
        Files.deleteIfExists(dir);
        return FileVisitResult.CONTINUE;
      }
    });
  }
}

#!/bin/sh
# A well-behaved game: says that it is ready, obeys its console, and saves when it is told to stop.
echo "Loading the world"
echo "Done (0.1s)!"
while read -r line; do
  case "$line" in
    stop) echo "Saving the world"; echo saved > world.txt; echo "Goodbye"; exit 0 ;;
    quit) echo "Stopping the server"; exit 0 ;;
    crash) echo "Something broke" >&2; exit 7 ;;
    *) echo "You said: $line" ;;
  esac
done

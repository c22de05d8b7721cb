/** Limits of one image, which all of its layers share. */
export const scanLimits = {
  layers: 500,
  /** Limit on the bytes that are read, both compressed and decompressed. */
  bytes: 16 * 2 ** 30,
  entries: 1_000_000,
  /** Limit on the bytes between two entries of an archive. These are headers, and zeros at the end of an archive. */
  bytesBetween: 16 * 2 ** 20,
  /** Limits on the bytes of one stored file, and of all files that are stored at a time. */
  fileBytes: 32 * 2 ** 20,
  totalBytes: 64 * 2 ** 20,
  maxFiles: 10_000,
  /** Limit on the bytes of the lists of files that distribution packages own. Above this limit, no file has an owner. */
  ownedBytes: 32 * 2 ** 20,
  /** Limits on package files of languages, and on the folders in their paths. If there are more files, the image has a gap. */
  languageFiles: 20_000,
  pathParts: 64,
  /** Limits on the bytes of one Java archive, of one archive inside a Java archive, and of all decompressed content. */
  archiveBytes: 128 * 2 ** 20,
  innerArchiveBytes: 32 * 2 ** 20,
  inflatedBytes: 2 * 2 ** 30,
  archiveEntries: 2_000_000,
  /** Limit on the bytes of one rpm database, and of all SQLite databases of rpm with their logs together. */
  rpmBytes: 256 * 2 ** 20,
  ms: 5 * 60_000,
}
export type ScanLimits = typeof scanLimits

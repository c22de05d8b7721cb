/** Limits of one image, for all its layers together. */
export const scanLimits = {
  layers: 500,
  /** The most bytes, compressed and decompressed together. */
  bytes: 16 * 2 ** 30,
  entries: 1_000_000,
  /** Between the end of one entry and the next: headers, and the zeros at the end of an archive. */
  bytesBetween: 16 * 2 ** 20,
  /** The most bytes of one file that is kept, and of all files that are kept at a time. */
  fileBytes: 32 * 2 ** 20,
  keptBytes: 64 * 2 ** 20,
  keptFiles: 10_000,
  /** The most bytes of the lists of files that packages of the distribution own. Above it, no file has an owner. */
  ownedBytes: 32 * 2 ** 20,
  /** The most files that name packages of languages, above which there is a gap, and the most folders in their paths. */
  languageFiles: 20_000,
  pathParts: 64,
  /** The most bytes of one Java archive, of one inside of it, and of all decompressed content. */
  archiveBytes: 128 * 2 ** 20,
  innerArchiveBytes: 32 * 2 ** 20,
  inflatedBytes: 2 * 2 ** 30,
  archiveEntries: 2_000_000,
  /** Bytes of one database of rpm. */
  rpmBytes: 256 * 2 ** 20,
  ms: 5 * 60_000,
}
export type ScanLimits = typeof scanLimits

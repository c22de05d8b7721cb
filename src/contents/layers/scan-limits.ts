/** What one image may cost, all its layers together. */
export const scanLimits = {
  layers: 500,
  /** Of what is stored and of what it decompresses to. */
  bytes: 16 * 2 ** 30,
  entries: 1_000_000,
  /** Between the end of one entry and the next: headers, and the zeros at the end of an archive. */
  bytesBetween: 16 * 2 ** 20,
  /** Of one file that is kept, and of all that are kept at a time. */
  fileBytes: 32 * 2 ** 20,
  keptBytes: 64 * 2 ** 20,
  keptFiles: 10_000,
  /** Of lists of what packages of the distribution own, beyond which nobody is known to own anything. */
  ownedBytes: 32 * 2 ** 20,
  /** Of files that name packages of languages, beyond which there is a gap; and how deep they lie in folders. */
  languageFiles: 20_000,
  pathParts: 64,
  /** Of one Java archive, of one inside of it, and of all that they decompress to. */
  archiveBytes: 128 * 2 ** 20,
  innerArchiveBytes: 32 * 2 ** 20,
  inflatedBytes: 2 * 2 ** 30,
  archiveEntries: 2_000_000,
  /** Bytes of one database of rpm. */
  rpmBytes: 256 * 2 ** 20,
  ms: 5 * 60_000,
}
export type ScanLimits = typeof scanLimits

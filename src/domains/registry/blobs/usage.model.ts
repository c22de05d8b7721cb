/**
 * What an organisation uses of the registry. `bytes` are those of its blobs, each once, and of its manifests, each once for
 * each repo that has it; `uploadBytes` those that open uploads have brought so far.
 */
export type Usage = { bytes: number; uploads: number; uploadBytes: number }

/** What each thing counts that a signer who is trusted says of an image. */
export const bytesOfSigned = 1024

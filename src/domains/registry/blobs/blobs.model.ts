/** A content of the registry. Repos that have it link to it; `location` is where the store keeps it. */
export type Blob = { digest: string; size: number; location: string }

/** An upload that is under way. `size` is how much of it is on disk, in how many pieces. */
export type Upload = { uid: string; size: number; parts: number }

/** One piece of an upload. `digest` is the SHA-256 of the piece that starts the upload, else empty. */
export type UploadPart = { start: number; size: number; location: string; digest: string }

/**
 * Storage that an organization uses in the registry. `bytes` are those of its blobs, each once, and of its manifests, each once for
 * each repo that has it; `uploadBytes` those that open uploads have brought so far.
 */
export type Usage = { bytes: number; uploads: number; uploadBytes: number }

/** Bytes that each statement of a trusted signer about an image counts. */
export const bytesOfSigned = 1024

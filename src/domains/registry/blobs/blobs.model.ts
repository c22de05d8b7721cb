/**
 * Content of the registry. Repositories that have the content link to it. `location` is the name of the content in the blob
 * store.
 */
export type Blob = { digest: string; size: number; location: string }

/** An open upload. `size` is the number of stored bytes, and `parts` the number of chunks. */
export type Upload = { uid: string; size: number; parts: number }

/** Chunk of an upload. `digest` is the SHA-256 of the first chunk, and empty for others. */
export type UploadPart = { start: number; size: number; location: string; digest: string }

/**
 * Storage that an organization uses. `bytes` counts each blob once, and each manifest once for each repository. `uploadBytes` are
 * the bytes of open uploads.
 */
export type Usage = { bytes: number; uploads: number; uploadBytes: number }

/** Bytes that count toward the quota for each statement of a trusted signer about an image. */
export const bytesOfSigned = 1024

/** A content of the registry. Repos that have it link to it; `location` is where the store keeps it. */
export type Blob = { digest: string; size: number; location: string }

/** An upload that is under way. `size` is how much of it is on disk, in how many pieces. */
export type Upload = { uid: string; size: number; parts: number }

/** One piece of an upload. `digest` is the SHA-256 of the piece that starts the upload, else empty. */
export type UploadPart = { start: number; size: number; location: string; digest: string }

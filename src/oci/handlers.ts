import { deleteBlob, getBlob } from './blobs.ts'
import { listRepositories } from './catalog.ts'
import { tagHistory, tagHistoryDraft } from './history.ts'
import { deleteManifest, getManifest, putManifest } from './manifests.ts'
import { getReferrers } from './referrers.ts'
import type { Route } from './routes.ts'
import { listTagNames } from './tags.ts'
import { deleteUpload, getUpload, patchUpload, postUpload, putUpload } from './uploads.ts'
import { getResolution } from './views/resolve.ts'
import type { Visit } from './visit.ts'

/** Decides by `allow` first, then does the work and writes the response. */
export type Handler = (visit: Visit, reference: string) => Promise<void>

/** What the registry serves, by what the path is about and the HTTP method. */
export const handlers: Record<Route['kind'], Record<string, Handler>> = {
  base: { GET: base, HEAD: base },
  catalog: { GET: listRepositories, HEAD: listRepositories },
  manifest: { GET: getManifest, HEAD: getManifest, PUT: putManifest, DELETE: deleteManifest },
  blob: { GET: getBlob, HEAD: getBlob, DELETE: deleteBlob },
  uploads: { POST: postUpload },
  upload: { GET: getUpload, HEAD: getUpload, PATCH: patchUpload, PUT: putUpload, DELETE: deleteUpload },
  tags: { GET: listTagNames, HEAD: listTagNames },
  referrers: { GET: getReferrers, HEAD: getReferrers },
  resolve: { GET: getResolution, HEAD: getResolution },
  history: { GET: tagHistory, HEAD: tagHistory },
  'tag-history': { GET: tagHistoryDraft, HEAD: tagHistoryDraft },
}

/** That there is a registry, and that the token is good. */
async function base({ res, req }: Visit): Promise<void> {
  const text = '{}'
  res.writeHead(200, {
    'content-type': 'application/json',
    'content-length': text.length,
    'docker-distribution-api-version': 'registry/2.0',
  })
  res.end(req.method === 'HEAD' ? undefined : text)
}

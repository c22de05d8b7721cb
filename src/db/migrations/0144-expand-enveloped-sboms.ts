import type { Migration } from '../migrate.ts'

export const migration: Migration = {
  id: '0144-expand-enveloped-sboms',
  up: () => [
    // Statements about an image in envelopes and bundles, which may have an SBOM in them.
    `CREATE INDEX manifests_envelopes ON manifests (repo_id, subject, id)
      WHERE artifact_type IN ('application/vnd.dsse.envelope.v1+json', 'application/vnd.dev.sigstore.bundle.v0.3+json',
                              'application/vnd.dev.sigstore.bundle+json;version=0.1',
                              'application/vnd.dev.sigstore.bundle+json;version=0.2',
                              'application/vnd.dev.sigstore.bundle+json;version=0.3')`,
  ],
}

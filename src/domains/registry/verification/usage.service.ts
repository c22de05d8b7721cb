// Compares the usage counts of organizations and of lists with the stored data.
import type { Db } from '#db/sql.ts'
import { addUsage } from '../blobs/usage.store.ts'
import type { Watch } from './verification.model.ts'
import * as store from './verification.store.ts'

const page = 500

/** Verifies the number of links to each blob of an organization, and the usage of the organization. */
export async function verifyUsage(db: Db, watch: Watch): Promise<void> {
  await verifyLinks(db, watch)
  await verifyUncounted(db, watch)
  for (let after = ''; ; ) {
    const organizations = await store.organizationsAfter(db, after, page)
    for (const organization of organizations) {
      const { bytes, uploads, uploadBytes } = await store.usageDifference(db, organization)
      if (bytes === 0 && uploads === 0 && uploadBytes === 0) continue
      if (watch.repair) await db.tx((tx) => addUsage(tx, organization, { bytes, uploads, uploadBytes }))
      const detail = `the difference is ${bytes} bytes, ${uploads} uploads and ${uploadBytes} bytes of uploads`
      watch.found({ check: 'usage', problem: 'usage is wrong', subject: organization, detail, repaired: watch.repair })
    }
    watch.examined('usage', organizations.length)
    if (organizations.length < page) return
    after = organizations.at(-1)!
  }
}

async function verifyLinks(db: Db, watch: Watch): Promise<void> {
  for (let after = { organization: '', digest: '' }; ; ) {
    const links = await store.countedLinks(db, after, page)
    for (const link of links) if (link.counted !== link.found) await report(db, link, watch)
    watch.examined('usage', links.length)
    if (links.length < page) return
    after = links.at(-1)!
  }
}

async function verifyUncounted(db: Db, watch: Watch): Promise<void> {
  for (let after = { repo: 0, digest: '' }; ; ) {
    const links = await store.repoLinks(db, after, page)
    for (const { organization, digest, isCounted } of links) {
      if (isCounted === 0) await report(db, { organization, digest, counted: 0, found: 1 }, watch)
    }
    if (links.length < page) return
    after = links.at(-1)!
  }
}

async function report(db: Db, link: store.CountedLink, watch: Watch): Promise<void> {
  if (watch.repair) await db.tx((tx) => store.correctLinks(tx, link))
  const { organization, digest, counted, found } = link
  watch.found({
    check: 'usage',
    problem: 'links are miscounted',
    subject: digest,
    detail: `${counted} repositories of ${organization} are counted, but ${found} have it`,
    repaired: watch.repair,
  })
}

import type { Handlers } from '#app.ts'
import { ScanImageResponseSchema, type ScanReportsService } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import {
  ListScannersResponseSchema,
  ScannerSchema,
  type ScannersService,
} from '#gen/pinfold/control/scanning/v1/scanners_pb.ts'
import { deleting } from '#lib/contract/handlers.ts'
import { messageOf, required } from '#lib/contract/messages.ts'
import { listScanners, putScanner, removeScanner, type ShownScanner, scanImage } from './scanners.service.ts'

const toScanner = messageOf(ScannerSchema)
const toScanners = messageOf(ListScannersResponseSchema)
const toScans = messageOf(ScanImageResponseSchema)

export const scanners: Handlers<typeof ScannersService> = {
  async listScanners(call) {
    return toScanners({ scanners: (await listScanners(call)).map(toMessage) })
  },

  async putScanner(call, { scanner }) {
    const { name, url, credential, groups, registryUrl, onPush } = required(scanner, 'scanner')
    return toMessage(await putScanner(call, { name, url, credential, groups, registryUrl, onPush }))
  },

  removeScanner: deleting('name', removeScanner),
}

export const scanRequests: Handlers<typeof ScanReportsService> = {
  async scanImage(call, { repoUid, digest }) {
    return toScans({ scans: await scanImage(call, repoUid, digest) })
  },
}

/** The scanner without its credential. */
function toMessage(scanner: ShownScanner) {
  return toScanner({ ...scanner, credential: undefined })
}

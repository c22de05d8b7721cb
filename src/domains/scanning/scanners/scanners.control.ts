import type { Handlers } from '#app.ts'
import type { ScanReportsService } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import type { Scanner as ScannerMessage, ScannersService } from '#gen/pinfold/control/scanning/v1/scanners_pb.ts'
import { invalid } from '#lib/errors.ts'
import { timestamp } from '#lib/timestamp.ts'
import { empty } from '#lib/wire.ts'
import { listScanners, putScanner, removeScanner, type ShownScanner, scanImage } from './scanners.service.ts'

export const scanners: Handlers<typeof ScannersService> = {
  async listScanners(call) {
    return {
      $typeName: 'pinfold.control.scanning.v1.ListScannersResponse',
      scanners: (await listScanners(call)).map(toMessage),
    }
  },

  async putScanner(call, { scanner }) {
    if (!scanner) throw invalid({ field: 'scanner', description: 'is required' })
    const { name, url, credential, groups, registryUrl, onPush } = scanner
    return toMessage(await putScanner(call, { name, url, credential, groups, registryUrl, onPush }))
  },

  async removeScanner(call, { name }) {
    await removeScanner(call, name)
    return empty
  },
}

export const scanRequests: Handlers<typeof ScanReportsService> = {
  async scanImage(call, { repoUid, digest }) {
    const scans = await scanImage(call, repoUid, digest)
    return {
      $typeName: 'pinfold.control.scanning.v1.ScanImageResponse',
      scans: scans.map(({ scanner, requestTime, beginTime, attempts, problem, digest: image }) => ({
        $typeName: 'pinfold.control.scanning.v1.ScanRequest',
        ...{ scanner, digest: image, attempts, problem, requestTime: timestamp(requestTime) },
        ...(beginTime === '' ? {} : { beginTime: timestamp(beginTime) }),
      })),
    }
  },
}

function toMessage(one: ShownScanner): ScannerMessage {
  const { name, url, groups, registryUrl, onPush, hasCredential, title, produces, problem, waiting } = one
  return {
    $typeName: 'pinfold.control.scanning.v1.Scanner',
    ...{ name, url, groups, registryUrl, onPush, hasCredential, title, produces, problem, waiting: BigInt(waiting) },
    ...(one.buildTime === '' ? {} : { buildTime: timestamp(one.buildTime) }),
    ...(one.askTime === '' ? {} : { askTime: timestamp(one.askTime) }),
    createTime: timestamp(one.createTime),
    updateTime: timestamp(one.updateTime),
  }
}

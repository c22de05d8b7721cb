import type { Service } from '#app.ts'
import { Vulnerabilities } from '#gen/pinfold/registry/v1/vulnerabilities_pb.ts'
import { vulnReports } from './reports/vuln-reports.v1.ts'

export const services: readonly Service[] = [{ desc: Vulnerabilities, handlers: vulnReports }]

// Names of the product's own services. They are read from the contract, like the capabilities.
import { ServicePrincipal, ServicePrincipalSchema } from '#gen/pinfold/iam/v2/identities_pb.ts'

const prefix = 'SERVICE_PRINCIPAL_'

/**
 * Number in the contract of a service, by a name such as `INGESTER` or `SERVICE_PRINCIPAL_INGESTER`. Undefined for an unknown
 * name.
 */
export function servicePrincipalNamed(name: string): number | undefined {
  const known = ServicePrincipalSchema.values.find((value) => value.name === name || value.name === prefix + name)
  return known?.number === ServicePrincipal.UNSPECIFIED ? undefined : known?.number
}

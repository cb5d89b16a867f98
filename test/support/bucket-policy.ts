// What somebody else than its owner may do in the bucket of a versitygw.
import { PutBucketPolicyCommand } from '@aws-sdk/client-s3'
import { s3Address } from '../../src/blobs/s3/address.ts'
import { createRequests } from '../../src/blobs/s3/requests.ts'
import type { S3Keys } from '../../src/contract/offsite-place.ts'
import type { VersityGw } from './versitygw.ts'

/** Only this, whatever was allowed before. */
export async function allow(
  gateway: VersityGw,
  { accessKeyId }: S3Keys,
  actions: readonly string[],
  region = 'us-east-1',
): Promise<void> {
  const address = { ...s3Address(gateway.place(''), gateway.keys), region }
  const bucket = `arn:aws:s3:::${gateway.bucket}`
  const statements = actions.map((Action) => ({
    Effect: 'Allow',
    Principal: { AWS: [accessKeyId] },
    Action,
    Resource: /Bucket/.test(Action) ? bucket : `${bucket}/*`,
  }))
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: statements })
  await createRequests(address).client.send(new PutBucketPolicyCommand({ Bucket: gateway.bucket, Policy }))
}

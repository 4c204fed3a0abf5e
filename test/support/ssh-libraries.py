"""Logs in with Paramiko and with AsyncSSH by a private key alone, beside which a certificate is."""

import asyncio
import sys

import asyncssh
import paramiko

key, port, user = sys.argv[1], int(sys.argv[2]), sys.argv[3]

client = paramiko.SSHClient()
client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
client.connect(
    "127.0.0.1", port, user, key_filename=key, allow_agent=False, look_for_keys=False
)
print("paramiko", client.exec_command("echo in")[1].read().decode().strip())
client.close()


async def log_in() -> None:
    connection = asyncssh.connect(
        "127.0.0.1",
        port,
        username=user,
        client_keys=[key],
        known_hosts=None,
        config=None,
        agent_path=None,
    )
    async with connection as session:
        print("asyncssh", (await session.run("echo in")).stdout.strip())


asyncio.run(log_in())

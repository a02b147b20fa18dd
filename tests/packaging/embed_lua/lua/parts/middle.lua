second; [[ \n
